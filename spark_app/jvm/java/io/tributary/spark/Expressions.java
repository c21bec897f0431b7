package io.tributary.spark;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Spark's expressions, made in Java. */
public final class Expressions {
    private static final DataType ANY = new ObjectType(Object.class);

    private Expressions() {}

    /** The column of what the object's public method returns for each value of the argument, null where that is. */
    static Column call(Object object, String method, DataType result, Column argument) {
        Literal self = Literal.fromObject(object, new ObjectType(object.getClass()));
        Seq<Expression> arguments = seq(List.of(argument.expr()));
        Seq<AbstractDataType> unchecked = seq(List.of());
        return new Column(new Invoke(self, method, result, arguments, unchecked, true, true, true));
    }

    /** The column of what the class's public method returns for all values of the arguments, null where one is. */
    static Column callStatic(Class<?> place, String method, DataType result, Column... arguments) {
        Expression[] found = Stream.of(arguments).map(Column::expr).toArray(Expression[]::new);
        return new Column(staticCall(place, method, result, found));
    }

    private static Expression staticCall(Class<?> place, String method, DataType result, Expression... arguments) {
        Seq<AbstractDataType> unchecked = seq(List.of());
        return new StaticInvoke(place, result, method, seq(List.of(arguments)), unchecked, true, true, true);
    }

    /** The value of the expression, of no type that Spark knows. */
    static Expression asObject(Expression expression) {
        return staticCall(Expressions.class, "same", ANY, expression);
    }

    /** What Spark's generated code calls for each value. */
    public static Object same(Object value) {
        return value;
    }

    static <T> Seq<T> seq(List<T> items) {
        return JavaConverters.asScalaBuffer(items).toList();
    }
}
